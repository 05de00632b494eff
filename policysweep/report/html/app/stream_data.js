// The data of the page: `summary` is a part of stream-report.json, `index` see
// policysweep/report/streams/html/index.py.

import { loaded } from "./loader.js";

const data = JSON.parse(document.getElementById("data").textContent);

export const summary = data.summary;
export const index = data.index;

index.streams.forEach((stream, place) => { stream.place = place; });
export const streamById = new Map(index.streams.map((stream) => [stream.id, stream]));

export const OUTCOMES = { P: ["passed", "passed"], F: ["failed", "failed"], U: ["unscored", "not scored"], ".": ["pending", "no record"] };
export const LESSONS = { A: "added", R: "revised", O: "left out", M: "feedback missing" };

export function armOf(stream) {
  return index.arms[stream.arm];
}

export function orderOf(stream) {
  return index.orders[armOf(stream).domain][stream.seed];
}

export function taskOf(stream, position) {
  const id = orderOf(stream)[position];
  return { id, ...index.domains[armOf(stream).domain].tasks[id] };
}

// The streams that met the same tasks with the same seed and trial, in the order of the arms.
export function sameCase(stream) {
  const { domain, agent } = armOf(stream);
  return index.streams.filter((other) => {
    const arm = armOf(other);
    return arm.domain === domain && other.seed === stream.seed && other.trial === stream.trial && (other === stream || arm.agent === agent);
  });
}

// What a task is held against when nothing else is asked for: no memory, which comes with its domain and agent.
export function baseline(stream) {
  return sameCase(stream).find((other) => other !== stream && armOf(other).baseline);
}

export function domainData(stream) {
  const { file } = index.domains[armOf(stream).domain];
  return loaded(file, file);
}

export function historyOf(stream) {
  return loaded(stream.file, stream.file);
}

export function recordOf(stream, position) {
  const digits = String(position).padStart(4, "0");
  const file = stream.file.replace(/\.js$/, `-${digits}.js`);
  return loaded(file, file);
}

export function streamName(stream) {
  const { domain, title } = armOf(stream);
  return `${title} in ${domain}, seed ${stream.seed}, trial ${stream.trial + 1}`;
}
