"""Virtual API keys: allowed models, rate limits and budgets."""

from dragoman.gateway.keys.keys import Keys
from dragoman.gateway.keys.records import Budget, KeyRecord, Reservation, Spent, UsageRow

__all__ = ["Budget", "KeyRecord", "Keys", "Reservation", "Spent", "UsageRow"]
