-- The embedding model of each stored document: vectors of two models are never compared, however many dimensions they have.

ALTER TABLE vector_documents ADD COLUMN model TEXT NOT NULL DEFAULT ''; -- '' until a memory with a model's name stores
CREATE INDEX vector_documents_by_model ON vector_documents (namespace_key, model);
CREATE TRIGGER vector_documents_of_one_model BEFORE INSERT ON vector_documents
WHEN EXISTS (SELECT 1 FROM vector_documents WHERE namespace_key = new.namespace_key AND model > new.model)
  OR EXISTS (SELECT 1 FROM vector_documents WHERE namespace_key = new.namespace_key AND model > '' AND model < new.model)
BEGIN
  SELECT RAISE(ABORT, 'the namespace holds vectors of another model');
END;
