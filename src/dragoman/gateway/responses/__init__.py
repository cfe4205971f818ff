"""OpenAI's stateful Responses API for models of any dialect: stored, continued, in the background.

`creating` serves `POST /v1/responses`, `reading` serves `/v1/responses/{id}`, `conversing` serves
`/v1/conversations`, and `websocket` serves the same API over a WebSocket.
"""
