"""The openai package, as its users call it, against the gateway.

Usage: sdk_test.py FAKE_GATEWAY
"""
import asyncio
import sys
import unittest
import urllib.request

import openai
from fake_gateway import FakeGateway

TOKEN = "right-token"
MODEL = "fake-model"


def say(text):
    return [{"role": "user", "content": text}]


class SdkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gateway = FakeGateway(PROGRAM, TOKEN)
        cls.client = cls.client_with(TOKEN)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.gateway.stop()

    @classmethod
    def client_with(cls, token):
        return openai.OpenAI(base_url=cls.gateway.url() + "/v1", api_key=token, max_retries=0)

    def create(self, text, **more):
        return self.client.chat.completions.create(model=MODEL, messages=say(text), **more)

    def test_chat(self):
        answer = self.create("hello there, world", temperature=0, seed=7, stop=["x"], user="u")
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertEqual(answer.choices[0].message.content, "hello there, world")
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertTrue(answer._request_id.startswith("req_"))

    def test_chat_of_content_parts_and_developer(self):
        messages = [{"role": "developer", "content": "be brief"},
                    {"role": "user", "content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]}]
        answer = self.client.chat.completions.create(model=MODEL, messages=messages)
        self.assertEqual(answer.choices[0].message.content, "in parts")

    def test_length(self):
        for name in ("max_tokens", "max_completion_tokens"):
            answer = self.create("one two three", **{name: 2})
            self.assertEqual(answer.choices[0].finish_reason, "length")
            self.assertEqual(answer.usage.completion_tokens, 2)

    def test_usage_tells_what_came_from_the_cache(self):
        cold = self.create("a prompt of six words here").usage
        warm = self.create("a prompt of six words here").usage
        self.assertEqual((cold.prompt_tokens, cold.completion_tokens, cold.total_tokens), (6, 6, 12))
        self.assertEqual(cold.prompt_tokens_details.cached_tokens, 0)
        self.assertEqual(warm.prompt_tokens_details.cached_tokens, 5)
        self.assertEqual((warm.prompt_cache_hit_tokens, warm.prompt_cache_miss_tokens), (5, 1))

    def test_stream(self):
        chunks = list(self.create("some words streamed", stream=True))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), "some words streamed")
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        self.assertEqual({chunk.id for chunk in chunks}, {chunks[0].id})
        self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_stream_with_usage(self):
        chunks = list(self.create("usage please", stream=True, stream_options={"include_usage": True}))
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.total_tokens, 4)
        self.assertEqual(chunks[-1].usage.prompt_tokens_details.cached_tokens, 0)

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model=MODEL, messages=say("a helper reads")) as stream:
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, "a helper reads")

    def test_many_streams_at_once(self):
        async def one(client, number):
            stream = await client.chat.completions.create(model=MODEL, messages=say(f"number {number}"), stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        async def all_of_them():
            async with openai.AsyncOpenAI(base_url=self.gateway.url() + "/v1", api_key=TOKEN, max_retries=0) as client:
                return await asyncio.gather(*(one(client, number) for number in range(30)))

        self.assertEqual(asyncio.run(all_of_them()), [f"number {number}" for number in range(30)])

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).owned_by, "cairn")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("other/model")

    def test_authentication_error(self):
        for token in ("wrong-token", "right-token-and-more"):
            with self.client_with(token) as client, self.assertRaises(openai.AuthenticationError) as caught:
                client.models.list()
            self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_not_found_error(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(model="gpt-5", messages=say("hi"))
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.embeddings.create(model=MODEL, input="hi")
        self.assertEqual(caught.exception.code, "unknown_url")

    def test_bad_request_error(self):
        for more, param in (({"n": 2}, "n"), ({"temperature": 3}, "temperature"), ({"logprobs": True}, "logprobs"),
                            ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools")):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create("hi", **more)
            self.assertEqual(caught.exception.param, param)
            self.assertEqual(caught.exception.type, "invalid_request_error")

    def test_context_length_exceeded(self):
        for stream in (False, True):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create("too long", stream=stream)
            self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_rate_limit_error(self):
        with self.assertRaises(openai.RateLimitError) as caught:
            self.create("overload")
        self.assertEqual(caught.exception.code, "rate_limit_exceeded")
        self.assertEqual(caught.exception.response.headers["retry-after"], "1")

    def test_status_error(self):
        for text, status in (("fail early", 500), ("unavailable", 503)):
            with self.assertRaises(openai.APIStatusError) as caught:
                self.create(text)
            self.assertEqual(caught.exception.status_code, status)

    def test_error_within_a_stream(self):
        with self.assertRaisesRegex(openai.APIError, "a fault was planned"):
            list(self.create("fail late", stream=True))

    def test_a_closed_stream_is_cancelled(self):
        stream = self.create("endless", stream=True)
        self.assertEqual(next(iter(stream)).choices[0].delta.role, "assistant")
        stream.close()
        # Each look is a round trip; the cancellation needs a few of them.
        for _ in range(100_000):
            with urllib.request.urlopen(self.gateway.url() + "/metrics") as metrics:
                if b'status="499"} 1' in metrics.read():
                    return
        self.fail("the generation goes on without its client")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
