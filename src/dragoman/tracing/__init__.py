"""Spans and metrics by OpenTelemetry's conventions for generative AI (extra `otel`)."""
