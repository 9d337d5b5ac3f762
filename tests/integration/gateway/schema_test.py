"""What the gateway answers, against the schemas of OpenAI's own API description where it is at hand.

Usage: schema_test.py FAKE_GATEWAY
The description (openai-openapi, MIT) is looked for at $CAIRN_OPENAI_SPEC, then as
shared/specs/openai_openapi.json in the folders above this one. Without it: exit code 77, skipped.
"""
import http.client
import json
import os
import pathlib
import sys
import unittest

import jsonschema
from fake_gateway import FakeGateway

STREAM = {"stream": True}
STREAM_WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def find_spec():
    given = os.environ.get("CAIRN_OPENAI_SPEC")
    if given:
        return pathlib.Path(given)
    for folder in pathlib.Path(__file__).resolve().parents:
        path = folder / "shared" / "specs" / "openai_openapi.json"
        if path.exists():
            return path
    return None


def without_nullable(schema):
    """OpenAPI 3.0's `nullable` in the words of JSON Schema."""
    if isinstance(schema, list):
        return [without_nullable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: without_nullable(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gateway = FakeGateway(PROGRAM)
        cls.schemas = without_nullable(json.loads(SPEC.read_text())["components"]["schemas"])

    @classmethod
    def tearDownClass(cls):
        cls.gateway.stop()

    def check(self, name, value):
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": self.schemas}}
        jsonschema.Draft202012Validator(schema).validate(value)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port)
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def chat(self, text, more):
        request = {"model": "fake-model", "messages": [{"role": "user", "content": text}], **more}
        self.check("CreateChatCompletionRequest", request)
        return self.ask("POST", "/v1/chat/completions", request)

    def test_the_check_can_fail(self):
        with self.assertRaises(jsonschema.ValidationError):
            self.check("CreateChatCompletionResponse", {"id": "x"})
        with self.assertRaises(jsonschema.ValidationError):
            self.check("Error", {"message": "m", "type": "t", "param": None})

    def test_completion(self):
        status, text = self.chat("hello world", {"max_tokens": 1})
        self.assertEqual(status, 200)
        self.check("CreateChatCompletionResponse", json.loads(text))

    def test_chunks(self):
        for more, count in ((STREAM, 4), (STREAM_WITH_USAGE, 5)):
            status, text = self.chat("hello world", more)
            self.assertEqual(status, 200)
            events = [event.removeprefix("data: ") for event in text.strip().split("\n\n")]
            self.assertEqual(events.pop(), "[DONE]")
            self.assertEqual(len(events), count)
            for event in events:
                self.check("CreateChatCompletionStreamResponse", json.loads(event))

    def test_models(self):
        self.check("ListModelsResponse", json.loads(self.ask("GET", "/v1/models")[1]))
        self.check("Model", json.loads(self.ask("GET", "/v1/models/fake-model")[1]))

    def test_errors(self):
        answers = [self.chat(text, {}) for text in ("too long", "overload", "unavailable", "fail early")]
        answers += [self.ask("POST", "/v1/chat/completions", {}), self.ask("GET", "/nowhere"),
                    self.ask("GET", "/v1/models/none"), self.ask("DELETE", "/health")]
        for status, text in answers:
            self.assertGreaterEqual(status, 400)
            self.check("ErrorResponse", json.loads(text))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    SPEC = find_spec()
    if SPEC is None:
        print("skipped: OpenAI's API description is not at hand (set CAIRN_OPENAI_SPEC)")
        sys.exit(77)
    unittest.main()
