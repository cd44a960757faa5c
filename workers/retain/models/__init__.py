"""Chat and embedding models, one port each, with retries and the choice by configuration."""
