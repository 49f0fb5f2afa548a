"""What writes the text of the generated functions: from a record to Python that `codegen` compiles."""
