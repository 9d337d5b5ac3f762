// Turns llama2.c's checkpoint and tokenizer files into a GGUF, so that published small models run.
#pragma once

#include <string>

#include "engine/gguf/gguf_writer.h"
#include "kvstore/base/result.h"

namespace cairn::testing {

// `checkpoint_path` is a version-0 file such as stories260K.bin, `tokenizer_path` its tok512.bin.
// All weights stay F32. kNotFound when a file is absent, kCorrupt when its size does not fit.
kv::Result<engine::GgufWriter> ReadLlama2cModel(const std::string& checkpoint_path,
                                                const std::string& tokenizer_path);

// The folder with stories260K.bin and tok512.bin: $CAIRN_STORIES, else ../shared/models beside the
// source tree. Empty when they are not there: such tests say GTEST_SKIP() << kNoStories.
std::string StoriesFolder();
inline constexpr char kNoStories[] =
    "no stories260K.bin and tok512.bin: set CAIRN_STORIES to their folder";

// What the model's authors publish for greedy generation from bos alone (stories260K/README.md):
// ./run stories260K/stories260K.bin -z stories260K/tok512.bin -t 0.0
inline constexpr char kStoriesGreedyText[] =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high.\n"
    "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. She "
    "said, \"I want to play with your ball, but I can't find it.\"\n"
    "Lily was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to "
    "do.\"\n"
    "Lily didn't want to help her mom, so she said, \"I'm sorry, mom. I didn't know what to do.\" "
    "Her mom said, \"Don't worry, Lily. We can help you.";

}  // namespace cairn::testing
