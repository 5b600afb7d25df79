/**
 * A small Markdown parser for text that comes without spans: previews and older items. It only marks
 * ranges and leaves unknown syntax as written. Linear, because each line is scanned once.
 */
const inline = [
  { mark: '**', kind: 'bold' },
  { mark: '__', kind: 'bold' },
  { mark: '~~', kind: 'strikethrough' },
  { mark: '*', kind: 'italic' },
  { mark: '`', kind: 'code' },
];

/** @returns {{ text: string, spans: { kind: string, start: number, length: number, url?: string, language?: string }[] }} */
export function readMarkdown(source) {
  const out = { text: '', spans: [] };
  const lines = source.split('\n');
  for (let i = 0; i < lines.length; i += 1) {
    if (i > 0) out.text += '\n';
    const fence = /^\s{0,3}```(\S*)/.exec(lines[i]);
    if (fence !== null) i = readFence(lines, i, fence[1], out);
    else readLine(lines[i], out);
  }
  return out;
}

/** Returns the index of the closing line, or of the last one while the block is still being written. */
function readFence(lines, start, language, out) {
  let end = start + 1;
  while (end < lines.length && !/^\s{0,3}```\s*$/.test(lines[end])) end += 1;
  const code = lines.slice(start + 1, end).join('\n');
  if (code.length > 0) {
    const span = { kind: 'code-block', start: out.text.length, length: code.length };
    out.spans.push(language === '' ? span : { ...span, language });
  }
  out.text += code;
  return Math.min(end, lines.length - 1);
}

function readLine(line, out) {
  const start = out.text.length;
  const heading = /^#{1,6} /.exec(line);
  const bullet = /^(\s*)[-*+] /.exec(line);
  const quote = /^> ?/.exec(line);
  if (bullet !== null) out.text += `${bullet[1]}• `;
  readInline(line.slice((heading ?? bullet ?? quote)?.[0].length ?? 0), out);
  const length = out.text.length - start;
  if (heading !== null && length > 0) out.spans.push({ kind: 'bold', start, length });
  if (quote !== null && length > 0) out.spans.push({ kind: 'quote', start, length });
}

function readInline(line, out) {
  let at = 0;
  // The end of a mark isn't searched for again once it is missing, which keeps the scan linear.
  const hopeless = new Set();
  while (at < line.length) {
    const taken = readMark(line, at, out, hopeless) || readLink(line, at, out, hopeless);
    if (taken > 0) {
      at += taken;
      continue;
    }
    out.text += line[at];
    at += 1;
  }
}

function readMark(line, at, out, hopeless) {
  const found = inline.find(({ mark }) => line.startsWith(mark, at) && !hopeless.has(mark));
  if (found === undefined) return 0;
  const { mark, kind } = found;
  const from = at + mark.length;
  const end = line.indexOf(mark, from);
  if (end === -1) hopeless.add(mark);
  if (end <= from || /\s/.test(line[from]) || /\s/.test(line[end - 1])) return 0;
  const start = out.text.length;
  if (kind === 'code') out.text += line.slice(from, end);
  else readInline(line.slice(from, end), out);
  const length = out.text.length - start;
  if (length > 0) out.spans.push({ kind, start, length });
  return end + mark.length - at;
}

function readLink(line, at, out, hopeless) {
  if (line[at] !== '[' || hopeless.has('[')) return 0;
  const middle = line.indexOf('](', at);
  const end = middle === -1 ? -1 : line.indexOf(')', middle);
  if (end === -1) hopeless.add('[');
  if (end === -1 || middle === at + 1) return 0;
  const start = out.text.length;
  const label = line.slice(at + 1, middle);
  out.text += label;
  out.spans.push({ kind: 'link', start, length: label.length, url: line.slice(middle + 2, end) });
  return end + 1 - at;
}
