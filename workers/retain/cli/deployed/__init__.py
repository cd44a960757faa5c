"""Commands that an application's developer or an operator runs against a deployment that is named once."""
