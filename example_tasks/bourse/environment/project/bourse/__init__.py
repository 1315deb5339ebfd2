"""The trading engine of the Nordmark Corn Exchange."""
