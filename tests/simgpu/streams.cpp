// Streams, events, graphs: when work is done, and in which order.
//
// Usually at once, in the calling thread. In the asynchronous mode a stream keeps its work, and does it as late as possible: when something
// waits for it (a stream, an event, the device, a copy to memory that is not pinned, a freed allocation), and only as far as that needs. A
// query does one piece of the work, so that a program that polls gets on. What a program forgot to wait for then happens after what it did
// next: copies and fills that find their memory unmapped fail with "illegal address", kernels crash, and data arrives too late.

#include <algorithm>

#include "tests/simgpu/simulator.h"

namespace sim {

Stream* Simulator::stream(Kind kind, Stream* named) {
    const std::scoped_lock lock(mutex);
    if (named) return streams_.contains(named) ? named : nullptr;
    const int device = current[static_cast<int>(kind)];
    return &default_streams_.try_emplace({kind, device}, Stream{.kind = kind, .device = device, .capture = {}, .queue = {}}).first->second;
}

bool Simulator::deferring(const Stream* stream) {
    const std::scoped_lock lock(mutex);
    return asynchronous && stream && !stream->capture;
}

int Simulator::enqueue(Stream* stream, Work work) {
    {
        const std::scoped_lock lock(mutex);
        if (!stream) return invalid_handle;
        if (stream->capture) {
            stream->capture->work->push_back(std::move(work));
            return ok;
        }
        if (asynchronous) {
            if (work_error_ == ok) stream->queue.push_back(std::move(work));
            return work_error_;
        }
    }
    return do_work(*stream, work);
}

int Simulator::do_work(Stream& stream, const Work& work) {
    {
        const std::scoped_lock lock(mutex);
        ++stream.at_work;
    }
    const int code = work();
    const std::scoped_lock lock(mutex);
    --stream.at_work;
    return code;
}

bool Simulator::has_work(Kind kind, int device) const {
    const auto busy = [&](const Stream& stream) {
        return stream.kind == kind && stream.device == device && (stream.at_work > 0 || !stream.queue.empty());
    };
    return std::ranges::any_of(streams_, [&](const auto& entry) { return busy(*entry.second); }) ||
           std::ranges::any_of(default_streams_, [&](const auto& entry) { return busy(entry.second); });
}

bool Simulator::run_one(Stream& stream) {
    const std::scoped_lock alone(running_);
    Work work;
    {
        const std::scoped_lock lock(mutex);
        if (stream.queue.empty()) return false;
        work = std::move(stream.queue.front());
        stream.queue.pop_front();
        if (work_error_ != ok) return true;
    }
    if (const int code = do_work(stream, work); code != ok) {
        const std::scoped_lock lock(mutex);
        // Its addresses were right when it was enqueued.
        if (work_error_ == ok) work_error_ = code == invalid_value ? illegal_address : code;
    }
    return true;
}

void Simulator::run_until(const Fence& fence) {
    const std::scoped_lock alone(running_);
    while (!fence.passed) {
        {
            const std::scoped_lock lock(mutex);
            const auto is_default = [&](const auto& entry) { return &entry.second == fence.stream; };
            if (!streams_.contains(fence.stream) && std::ranges::none_of(default_streams_, is_default)) return;
        }
        if (!run_one(*fence.stream)) return;  // recorded in a graph that was not launched, or the work failed
    }
}

int Simulator::work_result() {
    const std::scoped_lock lock(mutex);
    return work_error_;
}

int Simulator::create_stream(Kind kind, Stream** stream) {
    const std::scoped_lock lock(mutex);
    auto made = std::make_unique<Stream>(Stream{.kind = kind, .device = current[static_cast<int>(kind)], .capture = {}, .queue = {}});
    *stream = made.get();
    streams_.emplace(*stream, std::move(made));
    return ok;
}

int Simulator::destroy_stream(Stream* stream) {
    {
        const std::scoped_lock lock(mutex);
        if (!streams_.contains(stream)) return invalid_handle;
    }
    while (run_one(*stream)) {}
    const std::scoped_lock lock(mutex);
    streams_.erase(stream);
    return ok;
}

int Simulator::synchronize(Kind kind) {
    std::vector<Stream*> all = {stream(kind, nullptr)};
    {
        const std::scoped_lock lock(mutex);
        for (const auto& [key, s] : streams_) {
            if (s->kind == kind && s->device == all.front()->device) all.push_back(key);
        }
    }
    for (auto* s : all) {
        while (run_one(*s)) {}
    }
    return work_result();
}

int Simulator::synchronize_stream(Stream* stream) {
    if (!stream) return invalid_handle;
    if (stream->capture) return capture_unsupported;
    while (run_one(*stream)) {}
    return work_result();
}

int Simulator::query_stream(Stream* stream) {
    if (!stream) return invalid_handle;
    if (stream->capture) return capture_unsupported;
    run_one(*stream);
    const std::scoped_lock alone(running_);
    const std::scoped_lock lock(mutex);
    return work_error_ == ok && !stream->queue.empty() ? int(not_ready) : work_error_;
}

int Simulator::create_event(Event** event) {
    const std::scoped_lock lock(mutex);
    events_.insert(*event = new Event);
    return ok;
}

int Simulator::destroy_event(Event* event) {
    const std::scoped_lock lock(mutex);
    if (events_.erase(event) == 0) return invalid_handle;
    delete event;
    return ok;
}

int Simulator::record(Event* event, Stream* stream) {
    if (!stream) return invalid_handle;
    const auto fence = std::make_shared<Fence>(stream);
    {
        const std::scoped_lock lock(mutex);
        event->fence = fence;
        event->capture = stream->capture;
    }
    return enqueue(stream, [fence] {
        fence->time = std::chrono::steady_clock::now();
        fence->passed = true;
        return int(ok);
    });
}

int Simulator::wait_event(Stream* stream, Event* event) {
    if (!stream) return invalid_handle;
    std::shared_ptr<Fence> fence;
    {
        const std::scoped_lock lock(mutex);
        if (auto capture = event->capture.lock()) {  // the stream takes part; a graph's work is in the order of the calls anyway
            stream->capture = std::move(capture);
            return ok;
        }
        fence = event->fence;
    }
    if (!fence) return ok;  // never recorded
    return enqueue(stream, [this, fence] {
        run_until(*fence);
        return int(ok);
    });
}

int Simulator::synchronize_event(Event* event) {
    if (event->fence) run_until(*event->fence);
    return work_result();
}

int Simulator::query_event(Event* event) {
    const auto fence = event->fence;
    if (!fence || fence->passed) return work_result();
    {
        const std::scoped_lock lock(mutex);
        if (work_error_ != ok) return work_error_;
        if (!streams_.contains(fence->stream)) return ok;
    }
    run_one(*fence->stream);
    return fence->passed ? work_result() : int(not_ready);
}

int Simulator::begin_capture(Stream* stream) {
    const std::scoped_lock lock(mutex);
    if (!streams_.contains(stream) || stream->capture) return invalid_value;
    stream->capture = std::make_shared<Graph>();
    return ok;
}

int Simulator::end_capture(Stream* stream, Graph** graph) {
    const std::scoped_lock lock(mutex);
    if (!streams_.contains(stream) || !stream->capture) return invalid_value;
    const auto capture = stream->capture;
    for (auto& [key, s] : streams_) {
        if (s->capture == capture) s->capture.reset();
    }
    graphs_.insert(*graph = new Graph(std::move(*capture)));
    return ok;
}

int Simulator::instantiate(Graph** exec, const Graph* graph) {
    const std::scoped_lock lock(mutex);
    if (!std::ranges::any_of(graphs_, [&](const Graph* known) { return known == graph; })) return invalid_value;
    graphs_.insert(*exec = new Graph(*graph));
    return ok;
}

int Simulator::launch_graph(const Graph* exec, Stream* stream) {
    return enqueue(stream, [all = exec->work] {
        for (const auto& work : *all) {
            if (const int code = work(); code != ok) return code;
        }
        return int(ok);
    });
}

int Simulator::destroy_graph(Graph* graph) {
    const std::scoped_lock lock(mutex);
    if (graphs_.erase(graph) == 0) return invalid_value;
    delete graph;
    return ok;
}

}  // namespace sim
