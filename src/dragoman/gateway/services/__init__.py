"""Endpoints other than chat: embeddings, token counts, models, prompts, files and batches."""
