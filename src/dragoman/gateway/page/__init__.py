"""The page that the gateway serves at `/ui/`: its files, and the API behind them."""
