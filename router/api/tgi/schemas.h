// JSON schemas of TGI's routes. Those of bodies are written from the tables that read them.
#pragma once

#include <string>

namespace penstock::router::tgi {

// Members of an object of schemas: "GenerateParameters":{…},"GenerateRequest":{…},…
void AppendGenerateSchemas(std::string& out);
void AppendChatSchema(std::string& out);
void AppendCompletionSchema(std::string& out);

// All schemas of the dialect.
void AppendSchemas(std::string& out);

}  // namespace penstock::router::tgi
