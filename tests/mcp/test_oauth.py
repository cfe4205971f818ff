"""OAuth with the SDK: a server that requires a token, and a client that gets one.

Both ends are the SDK's; the test shows that our connections work with them.
"""

from __future__ import annotations

import secrets
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer as SdkServer
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyHttpUrl, AnyUrl

from dragoman import Agent
from dragoman.errors import AuthenticationError
from dragoman.mcp import MCPServer
from dragoman.testing import ScriptedModel
from tests.mcp.servers import calling
from tests.mcp.test_http import serving

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:uvicorn", "ignore::DeprecationWarning:websockets"
)


class Authority:
    """An authorization server that accepts everybody, in memory."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Who is known."""
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register anybody."""
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """Authorize everybody."""
        code = secrets.token_hex(16)
        self.codes[code] = AuthorizationCode(
            code=code, client_id=str(client.client_id), redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            expires_at=time.time() + 60, scopes=params.scopes or [],
            code_challenge=params.code_challenge, resource=params.resource,
        )  # fmt: skip
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, _client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Look it up."""
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Give a token."""
        token = secrets.token_hex(16)
        self.tokens[token] = AccessToken(
            token=token, client_id=str(client.client_id), scopes=authorization_code.scopes,
            resource=authorization_code.resource,
        )  # fmt: skip
        return OAuthToken(access_token=token, token_type="Bearer", expires_in=600)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Look it up."""
        return self.tokens.get(token)

    async def load_refresh_token(self, *_given: Any) -> None:
        """There are none."""
        return

    async def exchange_refresh_token(self, *_given: Any) -> Any:
        """Not used."""
        raise NotImplementedError

    async def revoke_token(self, _token: Any) -> None:
        """Not used."""
        return


class Kept:
    """The client's token storage."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """What is kept."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep them."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """What is kept."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it."""
        self.client = client_info


def guarded(authority: Authority) -> Any:
    """An app that only knows its address once it is served."""
    apps: dict[str, Any] = {}
    lifespans: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        address = f"http://127.0.0.1:{scope['server'][1]}"
        if address not in apps:
            server = SdkServer(
                "guarded", auth_server_provider=authority,  # type: ignore[arg-type]
                auth=AuthSettings(
                    issuer_url=AnyHttpUrl(address),
                    resource_server_url=AnyHttpUrl(f"{address}/mcp"),
                    client_registration_options=ClientRegistrationOptions(enabled=True),
                    validate_token_resource=False,
                ),
            )  # fmt: skip

            @server.tool()
            def secret() -> str:
                """Something for those who may know it."""
                return "open sesame"

            apps[address] = server.streamable_http_app(stateless_http=True)
            manager = server.session_manager.run()
            lifespans.append(manager)
            await manager.__aenter__()
        await apps[address](scope, receive, send)

    return app


def provider(address: str, kept: Kept) -> OAuthClientProvider:
    """The SDK's OAuth client, with a user who agrees at once."""
    landed: list[AuthorizationCodeResult] = []

    async def go(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url, follow_redirects=False)
        found = parse_qs(urlsplit(answer.headers["location"]).query)
        landed.append(
            AuthorizationCodeResult(
                code=found["code"][0], state=found["state"][0], iss=found.get("iss", [None])[0]
            )
        )

    async def came_back() -> AuthorizationCodeResult:
        return landed.pop()

    metadata = OAuthClientMetadata(
        client_name="dragoman", redirect_uris=[AnyUrl("http://localhost:9/back")],
        grant_types=["authorization_code"], token_endpoint_auth_method="client_secret_post",
    )  # fmt: skip
    return OAuthClientProvider(f"{address}/mcp", metadata, kept, go, came_back)


async def test_a_server_that_requires_a_token_gets_one() -> None:
    """Registered, authorized and sent with every request; kept for the next connection."""
    authority, kept = Authority(), Kept()
    async with serving(guarded(authority)) as address:
        bare = MCPServer.http(f"{address}/mcp", requires_approval=False)
        with pytest.raises(AuthenticationError, match="pass headers= or auth="):
            await bare.open()
        for _ in range(2):
            server = MCPServer.http(
                f"{address}/mcp", auth=provider(address, kept), requires_approval=False
            )
            agent = Agent(ScriptedModel([calling("secret"), "Done."]), tools=[server])
            async with agent:
                result = await agent.send("Tell me.")
            assert result.messages[2].tool_results[0].text == "open sesame"
    assert len(authority.tokens) == 1
    assert kept.tokens is not None


async def test_a_failed_authorization_is_reported() -> None:
    """Without its text, which may contain codes."""

    class Refusing(Authority):
        async def exchange_authorization_code(
            self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
        ) -> OAuthToken:
            assert client.client_id == authorization_code.client_id
            error = "invalid_grant"
            raise TokenError(error, "the code is sk-1")  # type: ignore[arg-type]

    async with serving(guarded(Refusing())) as address:
        server = MCPServer.http(f"{address}/mcp", auth=provider(address, Kept()))
        with pytest.raises(AuthenticationError, match="OAuth") as caught:
            await server.open()
    assert "sk-1" not in str(caught.value)
