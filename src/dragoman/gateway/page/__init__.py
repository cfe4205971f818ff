"""The web page that the gateway serves at `/ui/`: static files and the API behind them."""
