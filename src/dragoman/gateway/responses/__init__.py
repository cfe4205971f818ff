"""OpenAI's Responses with state, for models of any dialect: stored, continued, in the background.

`creating` answers `POST /v1/responses`, `reading` what is asked of a stored response afterwards,
`conversations` what is asked of conversations, `websocket` the same API over a WebSocket.
"""
