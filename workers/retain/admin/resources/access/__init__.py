"""The administrator's routes for who may do what: roles of people and services, and keys of applications."""
