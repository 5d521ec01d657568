"""What a log withstands: losses, splices, reworded observations, forgeries."""
