#include "ui/store/settings_json.h"

#include <QJsonDocument>
#include <QJsonObject>

namespace headroom::ui {

QByteArray sampling_to_json(const ConversationSettings& settings) {
    const engine::SamplingOptions& s = settings.sampling;
    QJsonObject json{
        {QStringLiteral("temperature"), s.temperature},
        {QStringLiteral("top_k"), s.top_k},
        {QStringLiteral("top_p"), s.top_p},
        {QStringLiteral("min_p"), s.min_p},
        {QStringLiteral("repeat_penalty"), s.repeat_penalty},
        {QStringLiteral("presence_penalty"), s.presence_penalty},
        {QStringLiteral("frequency_penalty"), s.frequency_penalty},
        {QStringLiteral("max_tokens"), settings.max_tokens},
    };
    if (s.seed) json.insert(QStringLiteral("seed"), QString::number(*s.seed));  // 64 bits do not fit a JSON number
    return QJsonDocument(json).toJson(QJsonDocument::Compact);
}

void sampling_from_json(const QByteArray& text, ConversationSettings& settings) {
    const QJsonObject json = QJsonDocument::fromJson(text).object();
    engine::SamplingOptions s;
    const auto number = [&](const char* key, float& value) {
        value = static_cast<float>(json.value(QLatin1String(key)).toDouble(value));
    };
    number("temperature", s.temperature);
    number("top_p", s.top_p);
    number("min_p", s.min_p);
    number("repeat_penalty", s.repeat_penalty);
    number("presence_penalty", s.presence_penalty);
    number("frequency_penalty", s.frequency_penalty);
    s.top_k = json.value(QLatin1String("top_k")).toInt(s.top_k);
    bool has_seed = false;
    const quint64 seed = json.value(QLatin1String("seed")).toString().toULongLong(&has_seed);
    if (has_seed) s.seed = seed;
    settings.sampling = s;
    settings.max_tokens = json.value(QLatin1String("max_tokens")).toInt(-1);
}

}  // namespace headroom::ui
