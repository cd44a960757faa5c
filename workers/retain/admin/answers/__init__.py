"""What the operator's side answers: the types of the JSON, for the OpenAPI document. The tests hold every answer to it."""
