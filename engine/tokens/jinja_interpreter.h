// Runs a parsed template: variables in, text with its trust out.
#pragma once

#include "engine/tokens/jinja_ast.h"
#include "engine/tokens/jinja_text.h"
#include "kvstore/base/result.h"

namespace cairn::engine::jinja {

// kInvalid when the template refuses (raise_exception), misuses a value, or goes on and on: time,
// memory and stack are bounded whatever the template says.
kv::Result<Text> Run(const Body& body, Map variables);

}  // namespace cairn::engine::jinja
