"""The tidy rules catch what they are for, and let the rest pass."""
import unittest

import rules
import source_tree as tree


def layers_of(text):
    return {layer.name: layer for layer in tree.parse_layers(text, "x")}


class Layers(unittest.TestCase):
    def setUp(self):
        self.layers = {
            "low": tree.Layer("low", "kvstore/low", [], ["a.cc"]),
            "middle": tree.Layer("middle", "kvstore/middle", ["low"], []),
            "high": tree.Layer("high", "kvstore/high", ["middle"], []),
        }

    def test_upward_include_is_caught(self):
        self.assertTrue(list(rules.includes(self.layers, "kvstore/low/a.cc", '#include "kvstore/high/h.h"\n')))

    def test_downward_include_passes_through_uses(self):
        self.assertFalse(list(rules.includes(self.layers, "kvstore/high/a.cc", '#include "kvstore/low/h.h"\n')))

    def test_cycle_is_caught(self):
        self.layers["low"].uses.append("high")
        self.assertTrue(list(rules.cycles(self.layers)))

    def test_source_in_no_target_is_caught(self):
        self.assertTrue(list(rules.in_some_target(self.layers, "kvstore/low/b.cc")))
        self.assertFalse(list(rules.in_some_target(self.layers, "kvstore/low/a.cc")))

    def test_cmake_is_parsed(self):
        layer = layers_of("kv_layer(a EXCEPTIONS\n USES b c # why\n PACKAGES p\n SOURCES d.cc)")["a"]
        self.assertEqual((layer.uses, layer.sources), (["b", "c"], ["d.cc"]))


class Bans(unittest.TestCase):
    def caught(self, text, path="kvstore/client/a.cc"):
        return list(rules.bans(path, text))

    def test_each_ban_catches_its_kind(self):
        for text in ("auto t = std::chrono::steady_clock::now();", "std::this_thread::sleep_for(x);",
                     "std::mt19937 g;", "#include <thread>", "#include <liburing.h>",
                     '#include "kvstore/os/poller.h"', '#include "tests/sim/x.h"', "GTEST_SKIP();",
                     "TEST(A, DISABLED_B)", "EXPECT_TRUE(true)"):
            self.assertTrue(self.caught(text), text)

    def test_comments_strings_and_allowed_folders_pass(self):
        self.assertFalse(self.caught('// steady_clock::now\nauto s = "sleep_for";'))
        self.assertFalse(self.caught("steady_clock::now()", "kvstore/os/clock.cc"))

    def test_braces_in_await(self):
        bad = "co_await Put(Options{.name = s});"
        good = "if (co_await Ready()) { x = {1}; }\nco_await Run([&] { Work(); });"
        self.assertTrue(list(rules.braces_in_await("a.cc", bad)))
        self.assertFalse(list(rules.braces_in_await("a.cc", good)))

    def test_awaits_that_go_wrong(self):
        for bad in ("co_await *event;", "x = y ? co_await A() : b;", "co_await Put(Options{1});"):
            self.assertTrue(list(rules.awaits_that_go_wrong("a.cc", bad)), bad)
        good = "Event& event = *held;\nco_await event;\nx = co_await A() * 2;"
        self.assertFalse(list(rules.awaits_that_go_wrong("a.cc", good)))


class Shape(unittest.TestCase):
    def test_purpose_line(self):
        self.assertTrue(list(rules.purpose_line("a.cc", "#pragma once\n")))
        self.assertFalse(list(rules.purpose_line("a.cc", "// Does one thing.\n")))

    def test_long_function_is_found_and_short_ones_are_not(self):
        long = "namespace a {\nint F() {\n" + "  x();\n" * 80 + "}\nint G() { return {1}; }\n}\n"
        found = list(rules.sizes("a.cc", long, {}))
        self.assertEqual(len(found), 1, found)
        self.assertIn("a.cc:2", found[0])
        self.assertFalse(list(rules.sizes("a.cc", long, {"a.cc function": 90})))

    def test_long_class_is_no_function(self):
        text = "class A {\n" + "  int F();\n" * 100 + "};\n"
        self.assertFalse(list(rules.sizes("a.h", text, {})))

    def test_long_file_is_found(self):
        self.assertTrue(list(rules.sizes("a.h", "// x\n" * 300, {})))


class Readmes(unittest.TestCase):
    def test_uses_line_must_agree(self):
        layer = tree.Layer("kvstore_client", "kvstore/client", ["kvstore_io", "erasure"], [])
        self.assertFalse(list(rules.readme_uses(layer, "# a\nUses: kvstore/io, erasure. Used by: x.\n")))
        self.assertTrue(list(rules.readme_uses(layer, "# a\nUses: kvstore/io.\n")))
        self.assertTrue(list(rules.readme_uses(layer, "# a\n")))


if __name__ == "__main__":
    unittest.main()
