"""What experiments share: options, worker processes, statistics, campaigns, models and what comes of a run."""
