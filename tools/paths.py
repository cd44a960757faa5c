"""Paths of a checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build"
CACHE = ROOT / ".cache"
NODE_BIN = ROOT / "node_modules" / ".bin"
PRODUCTION_CONFIG = ROOT / "wrangler.toml"
LOCAL_CONFIG = ROOT / "wrangler.local.json"
DEVELOPMENT_VARIABLES = ROOT / ".dev.vars"
"""Secrets, and variables that replace those of the local configuration. Source: https://developers.cloudflare.com/workers/configuration/secrets/"""
STAND_IN_CONFIG = ROOT / "vectorize" / "wrangler.toml"
AGENT_MEMORY_CONFIG = ROOT / "agent_memory" / "wrangler.toml"
