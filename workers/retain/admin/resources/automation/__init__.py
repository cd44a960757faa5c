"""The administrator's routes for what happens without a request: messages to webhooks, and runs of schedules."""
