// Which messages a judge's justification cites: "[4]", "turn 4", "turns 2, 3 and 7", "turns 2-5".

const CITED = /\[(\d+)\]|\b(?:turns?|messages?)\s+(\d+(?:\s*(?:-|–|to|,|and|,\s*and)\s*\d+)*)/gi;
const RANGE = /(\d+)\s*(?:-|–|to)\s*(\d+)/g;
const LONGEST_RANGE = 50;

export function cites(text) {
  const found = new Set();
  for (const [, bracketed, listed] of (text ?? "").matchAll(CITED)) {
    if (bracketed) found.add(Number(bracketed));
    else for (const number of numbers(listed)) found.add(number);
  }
  return [...found];
}

function numbers(listed) {
  const found = listed.match(/\d+/g).map(Number);
  for (const [, first, last] of listed.matchAll(RANGE)) {
    for (let at = Number(first); at <= Math.min(Number(last), Number(first) + LONGEST_RANGE); at += 1) found.push(at);
  }
  return found;
}
