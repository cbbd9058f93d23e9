#include "ui/vram/vram_words.h"

#include <QCoreApplication>
#include <QLocale>

#include <algorithm>

#include "core/base/bytes.h"
#include "ui/theme/size_text.h"

namespace headroom::ui {
namespace {

// A point of the curve was measured with at least so much held as it says, and at most this much more.
constexpr std::uint64_t kSpeedPoint = 256 * MiB;

QString tr(const char* text) { return QCoreApplication::translate("Vram", text); }

QString duration(double ms) {
    const QLocale locale;
    const QString text = ms < 10 ? tr("%1 ms").arg(locale.toString(ms, 'f', 1)) : ms < 10'000 ? tr("%1 ms").arg(locale.toString(ms, 'f', 0))
                                                                                            : tr("%1 s").arg(locale.toString(ms / 1000, 'f', 1));
    return QString(text).replace(u' ', QChar::Nbsp);
}

QString moved(const engine::VramReport& report) {
    using engine::VramCause;
    if (report.own_after < report.own_before) {
        const QString bytes = size_text(report.own_before - report.own_after);
        const QString text = report.cause == VramCause::yield ? tr("Other programs needed memory: gave back %1 in %2") : tr("Gave back %1 in %2");
        return text.arg(bytes, duration(report.total_ms));
    }
    if (report.own_after > report.own_before) {
        const QString bytes = size_text(report.own_after - report.own_before);
        const QString text = report.cause == VramCause::regrow ? tr("Other programs gave memory back: took %1 in %2") : tr("Took %1 in %2");
        return text.arg(bytes, duration(report.total_ms));
    }
    if (report.cause == VramCause::load) return tr("The model holds %1 of the card").arg(size_text(report.own_after));
    if (report.cause == VramCause::need) return tr("The conversation took room of the weights");
    return report.parked ? tr("Nothing was left to give back") : tr("Nothing had to change");
}

QString blocks(const engine::VramReport& report) {
    const QLocale locale;
    const QString text = report.block_name == "experts" ? tr("%1 of %2 experts on the card") : tr("%1 of %2 layers on the card");
    return text.arg(locale.toString(qlonglong{report.blocks_resident}), locale.toString(qlonglong{report.blocks_total}));
}

}  // namespace

QString brief_name(const engine::VramDevice& device) {
    const QString name = QString::fromStdString(device.name);
    QString brief = name;
    for (const char* maker : {"NVIDIA ", "GeForce ", "AMD ", "Radeon "}) {
        if (brief.startsWith(QLatin1String(maker))) brief.remove(0, static_cast<int>(qstrlen(maker)));
    }
    return brief.size() < 3 ? name : brief;
}

QString words_of(const engine::VramReport& report) {
    const QString limit = QString::fromStdString(report.limited_by);
    if (!report.met) {
        const bool kept = report.free_after >= report.reserve_bytes;  // then the cap is what was missed
        const QString missed = kept ? tr("Wanted to use %1 at most, %2 are in use").arg(size_text(report.wish.cap_bytes.value_or(0)), size_text(report.own_after))
                                    : tr("Wanted %1 free, %2 are").arg(size_text(report.reserve_bytes), size_text(report.free_after));
        return limit.isEmpty() ? missed : tr("%1: %2").arg(missed, limit);
    }
    QStringList parts{moved(report)};
    if (report.parked) {
        parts << tr("parked: nothing is left on the card");
    } else if (report.blocks_total > 0) {
        parts << blocks(report);
    }
    if (!limit.isEmpty()) parts << limit;
    return parts.join(QStringLiteral(" · "));
}

std::uint64_t own_at(const engine::VramDevice& device, std::uint64_t reserve_bytes) {
    const std::uint64_t taken = device.others_bytes() + reserve_bytes;
    const std::uint64_t room = device.total_bytes > taken ? device.total_bytes - taken : 0;
    return std::min({room, device.full_bytes, device.wish.cap_bytes.value_or(room)});
}

std::optional<double> speed_at(const engine::VramDevice& device, std::uint64_t own_bytes) {
    const auto& speeds = device.speeds;
    if (speeds.empty() || own_bytes < speeds.front().own_bytes || own_bytes > speeds.back().own_bytes + kSpeedPoint) return std::nullopt;
    const auto above = std::ranges::upper_bound(speeds, own_bytes, {}, &engine::VramSpeed::own_bytes);
    if (above == speeds.end()) return speeds.back().tokens_per_second;
    const auto below = std::prev(above);
    const double part = static_cast<double>(own_bytes - below->own_bytes) / static_cast<double>(above->own_bytes - below->own_bytes);
    return below->tokens_per_second + part * (above->tokens_per_second - below->tokens_per_second);
}

QString expectation(const engine::VramDevice& device, std::uint64_t reserve_bytes) {
    const std::uint64_t own = own_at(device, reserve_bytes);
    const std::uint64_t used = std::min(device.others_bytes() + own, device.total_bytes);
    const QString free = tr("%1 free").arg(size_text(device.total_bytes - used));
    const auto speed = speed_at(device, own);
    return speed ? tr("%1 · about %2 tok/s").arg(free, QLocale().toString(*speed, 'f', *speed < 10 ? 1 : 0)) : free;
}

}  // namespace headroom::ui
