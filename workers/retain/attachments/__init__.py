"""Attachments: files that messages to agents bring, as rows in D1 and objects in R2."""
