// Requests changed at random: the server answers each with a status of its own, or closes the connection, and goes on.

#include <QTest>

#include "tests/server/test_server.h"

using namespace headroom::test;

namespace {

const std::vector<std::string> kBodies{
    R"({"model":"synthetic","messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"y"}]}],"temperature":0.5,"max_tokens":3,"stop":["a"],"n":2,"seed":1,"stream":true,"stream_options":{"include_usage":true}})",
    R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"z"}],"max_tokens":2,"logprobs":true,"top_logprobs":2,"logit_bias":{"65":-5}})",
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":4,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}}}],"tool_choice":"required"})",
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":4,"response_format":{"type":"json_schema","json_schema":{"schema":{"anyOf":[{"type":"string","pattern":"^a+$"},{"$ref":"#/$defs/b"}],"$defs":{"b":{"enum":[1,2]}}}}}})",
    R"({"prompt":"Once","max_tokens":3,"logprobs":2,"echo":true})",
    R"({"input":["a","b"],"encoding_format":"base64","pooling":"last"})",
    R"({"model":"synthetic","messages":[{"role":"user","content":"x"}],"options":{"num_predict":3,"stop":"q"},"keep_alive":"5m","format":"json","stream":false})",
    R"({"reserve_mib":5,"device":"cuda:0","cap_mib":null})"};
const std::vector<std::string> kPaths{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/vram", "/v1/load", "/api/chat", "/api/generate", "/api/embed", "/api/show"};
const std::vector<std::string> kPieces{"null", "-1", "1e99", "\"\"", "[]", "{}", "true", "\\u0000", "\xff", "99999999999999999999", "[[[[", "\"user\"", ",", ":", "\"$ref\":\"#\""};

// A few bytes are changed, taken out, doubled, or replaced by a piece.
std::string changed(std::string text, RandomNumbers& random) {
    for (std::uint64_t i = 1 + random.below(4); i > 0 && !text.empty(); --i) {
        const std::size_t at = random.below(text.size());
        const std::size_t count = std::min<std::size_t>(text.size() - at, random.below(12));
        switch (random.below(5)) {
            case 0: text[at] = static_cast<char>(random.below(256)); break;
            case 1: text.erase(at, count); break;
            case 2: text.insert(at, text.substr(at, count)); break;
            case 3: text.replace(at, count, kPieces[random.below(kPieces.size())]); break;
            default: text.insert(at, kPieces[random.below(kPieces.size())]);
        }
    }
    return text;
}

}  // namespace

class TstServerRandom : public QObject {
    Q_OBJECT

private slots:
    void bodies() {
        TestServer server;
        RandomNumbers random(20261130);
        for (int i = 0; i < 400; ++i) {
            std::string body = changed(kBodies[random.below(kBodies.size())], random);
            const std::string& path = kPaths[random.below(kPaths.size())];
            // Without a limit of their own answers go on to the end of the context.
            if (body.find("max_tokens") == std::string::npos && body.find("num_predict") == std::string::npos && path.ends_with("chat")) continue;
            const Reply reply = ask(server.port(), "POST", path, body, {{"Content-Type", "application/json"}});
            const bool known = reply.status == 200 || reply.status == 400 || reply.status == 404 || reply.status == 409;
            QVERIFY2(known && reply.whole, (path + " " + body + " " + std::to_string(reply.status)).c_str());
        }
        QVERIFY(server.settle());
    }

    void bytes() {
        TestServer server;
        RandomNumbers random(30112026);
        const std::string good = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1d\r\n"
                                 "{\"prompt\":\"x\",\"max_tokens\":1}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        for (int i = 0; i < 300; ++i) {
            Connection connection(server.port());
            connection.send(changed(good, random));
            if (random.below(2) == 0) (void)connection.await(1, 20);
            connection.close();
        }
        QVERIFY(server.settle());
        QCOMPARE(get(server.port(), "/health").status, 200);
    }
};

QTEST_GUILESS_MAIN(TstServerRandom)
#include "tst_server_random.moc"
