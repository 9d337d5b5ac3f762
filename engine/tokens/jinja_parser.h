// Turns the source of a template into a tree.
#pragma once

#include <string_view>

#include "engine/tokens/jinja_ast.h"
#include "kvstore/base/result.h"

namespace cairn::engine::jinja {

// kInvalid names the line and what is wrong, or which part of the language we do not have.
kv::Result<Body> Parse(std::string_view source);

}  // namespace cairn::engine::jinja
