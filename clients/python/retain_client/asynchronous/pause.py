"""Waiting."""

from __future__ import annotations

from asyncio import sleep

__all__ = ["sleep"]
