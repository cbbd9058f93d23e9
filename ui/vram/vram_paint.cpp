#include "ui/vram/vram_paint.h"

#include <QCoreApplication>
#include <QPainter>
#include <QPixmap>

#include <cmath>

#include "ui/theme/size_text.h"

namespace headroom::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("Vram", text); }

}  // namespace

ColorRole color_of(VramOwner owner) {
    switch (owner) {
        case VramOwner::others: return ColorRole::vram_others;
        case VramOwner::kv: return ColorRole::vram_kv;
        case VramOwner::weights: return ColorRole::vram_weights;
        case VramOwner::scratch: return ColorRole::vram_scratch;
    }
    return ColorRole::muted;
}

QString name_of(VramOwner owner) {
    switch (owner) {
        case VramOwner::others: return tr("others");
        case VramOwner::kv: return tr("KV");
        case VramOwner::weights: return tr("weights");
        case VramOwner::scratch: return tr("work");
    }
    return {};
}

QString long_name_of(VramOwner owner) {
    switch (owner) {
        case VramOwner::others: return tr("Other programs");
        case VramOwner::kv: return tr("Conversations (KV)");
        case VramOwner::weights: return tr("Weights");
        case VramOwner::scratch: return tr("Working memory");
    }
    return {};
}

std::uint64_t bytes_of(const engine::VramDevice& device, VramOwner owner) {
    switch (owner) {
        case VramOwner::others: return device.others_bytes();
        case VramOwner::kv: return device.kv_bytes;
        case VramOwner::weights: return device.weights_bytes;
        case VramOwner::scratch: return device.scratch_bytes;
    }
    return 0;
}

QString legend_of(const Theme& theme, const engine::VramDevice& device) {
    const auto item = [&](ColorRole role, QChar square, const QString& text) {
        return QStringLiteral("<span style=\"color:%1\">%2</span>&nbsp;%3")
            .arg(theme.color(role).name(), square, text.toHtmlEscaped().replace(u' ', QChar::Nbsp));
    };
    QStringList items;
    for (const VramOwner owner : kVramOwners) {
        if (const std::uint64_t bytes = bytes_of(device, owner); bytes > 0) {
            items << item(color_of(owner), QChar(0x25A0), tr("%1 %2").arg(long_name_of(owner), size_text(bytes)));
        }
    }
    items << item(ColorRole::muted, QChar(0x25A1), tr("Free %1 of %2").arg(size_text(device.free_bytes), size_text(device.total_bytes)));
    return items.join(QStringLiteral("&nbsp;&nbsp; "));
}

QBrush hatching(const Theme& theme, double device_pixel_ratio) {
    const int side = static_cast<int>(std::lround(theme.px(7) * device_pixel_ratio));
    QPixmap tile(side, side);
    tile.fill(Qt::transparent);
    QPainter painter(&tile);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setOpacity(0.7);  // below what stands on it
    painter.setPen(QPen(theme.color(ColorRole::muted), device_pixel_ratio * theme.px(100) / 100.0));
    for (const int shift : {-side, 0, side}) painter.drawLine(QPointF(shift - 1, side + 1), QPointF(shift + side + 1, -1));
    painter.end();
    tile.setDevicePixelRatio(device_pixel_ratio);
    return {tile};
}

}  // namespace headroom::ui
