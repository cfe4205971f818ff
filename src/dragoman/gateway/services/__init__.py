"""What clients ask for besides chats: embeddings, counts, models, prompts, files and batches."""
