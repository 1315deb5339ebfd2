"""Records of runs and the directory they are kept in."""
