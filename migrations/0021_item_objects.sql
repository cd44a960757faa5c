-- Which item points to an object: the sweep finds objects that none points to, whichever key of the item they are noted for.
CREATE INDEX memory_items_by_object ON memory_items (object_key) WHERE object_key IS NOT NULL;
