// The bodies of TGI's routes as JSON schemas, written from the tables that read them.
#pragma once

#include <string>

namespace penstock::router::tgi {

// Members of an object of schemas: "GenerateParameters":{…},"GenerateRequest":{…},…
void AppendGenerateSchemas(std::string& out);
void AppendChatSchema(std::string& out);
void AppendCompletionSchema(std::string& out);

// Those of answers and errors, of all dialects.
void AppendAnswerSchemas(std::string& out);

}  // namespace penstock::router::tgi
