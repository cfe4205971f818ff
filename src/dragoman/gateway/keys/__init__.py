"""Virtual API keys: allowed models, rate limits and budgets."""

from dragoman.gateway.keys.keys import Keys
from dragoman.gateway.keys.records import (
    BatchSpent,
    Budget,
    KeyRecord,
    Reservation,
    Spent,
    UsageRow,
)

__all__ = ["BatchSpent", "Budget", "KeyRecord", "Keys", "Reservation", "Spent", "UsageRow"]
