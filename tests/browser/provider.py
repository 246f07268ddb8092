"""A provider of logins (OpenID Connect) on this machine, which lets everybody in as whoever the test says."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "tfcompare", "a secret of the client"


class Provider(ThreadingHTTPServer):
    """Whoever is sent to it comes back logged in as `account`, without being asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("localhost", 0), _Handler)
        self.url = f"http://localhost:{self.server_address[1]}"
        self.account = ""
        self.key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig"})
        self.asked: dict[str, Mapping[str, str]] = {}
        """By the code that was given out: what the browser was sent here with, and `account`."""

    def secrets(self, app: str) -> str:
        """What makes a server at that address ask for a login here: its `secrets.toml`."""
        return (
            f'[auth]\nredirect_uri = "{app}/oauth2callback"\ncookie_secret = "a long random text"\n'
            f'client_id = "{CLIENT}"\nclient_secret = "{SECRET}"\n'
            f'server_metadata_url = "{self.url}/.well-known/openid-configuration"\n'
        )

    @property
    def about(self) -> dict[str, Any]:
        ends = {"authorization": "authorize", "token": "token", "end_session": "logout"}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            **{f"{name}_endpoint": f"{self.url}/{path}" for name, path in ends.items()},
        }

    def let_in(self, asked: Mapping[str, str]) -> str:
        """Where the browser goes on."""
        code = f"code {len(self.asked)}"
        self.asked[code] = {**asked, "account": self.account}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def tokens(self, told: Mapping[str, str], authorization: str) -> dict[str, Any]:
        """What the app's server gets for a code; a code is good for once."""
        asked = self.asked.pop(told["code"])
        client = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(told["code_verifier"].encode()).digest()).rstrip(b"=")
        assert (client, challenge.decode()) == (f"{CLIENT}:{SECRET}", asked["code_challenge"])
        now, account = int(time.time()), asked["account"]
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": f"id of {account}",
            "email": f"{account}@example.com",
            "iat": now,
        } | {"exp": now + 600, "nonce": asked["nonce"]}
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)
        return {"access_token": "access", "token_type": "Bearer", "expires_in": 600, "id_token": token}


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        match url.path:
            case "/.well-known/openid-configuration":
                self._answer(self.server.about)
            case "/keys":
                self._answer({"keys": [self.server.key.as_dict(private=False)]})
            case "/authorize":
                self._send_to(self.server.let_in(asked))
            case "/logout":
                self._send_to(asked["post_logout_redirect_uri"])
            case _:
                self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        told = {name: values[0] for name, values in parse_qs(body).items()}
        self._answer(self.server.tokens(told, self.headers["Authorization"]))

    def _answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_to(self, url: str) -> None:
        self.send_response(302)
        self.send_header("Location", url)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def login_provider() -> Iterator[Provider]:
    with Provider() as provider:
        threading.Thread(target=provider.serve_forever, args=(0.02,), daemon=True).start()
        yield provider
        provider.shutdown()
