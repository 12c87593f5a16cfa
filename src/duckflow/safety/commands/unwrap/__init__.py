"""Programs that run other programs: what is behind them."""
