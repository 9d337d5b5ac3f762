// Writes requests as Mooncake JSONL, with the block size and session that its readers may use.
#pragma once

#include <string>

#include "tools/trace/request.h"

namespace cairn::tools {

// One line, with its end:
// {"timestamp": 12, "input_length": 600, "output_length": 9, "hash_ids": [4, 5], "block_size": 512,
//  "session_id": 77}
std::string MooncakeLine(const Request& request, uint64_t block_tokens);

// The same in Bailian's fields; `turn` counts from 1 within the session.
std::string BailianLine(const Request& request, uint64_t block_tokens, uint64_t turn);

}  // namespace cairn::tools
