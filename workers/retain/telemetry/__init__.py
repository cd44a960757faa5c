"""Traces and metrics in OpenTelemetry's conventions, exported as OTLP over HTTP."""
