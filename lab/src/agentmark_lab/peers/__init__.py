"""Other people's schemes, written from their papers, for comparison."""
