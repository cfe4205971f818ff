"""Google Gemini: `generateContent`, of the Gemini API and of Vertex AI."""
