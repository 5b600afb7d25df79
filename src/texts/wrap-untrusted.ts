/** Encloses strangers' text, which is data, between two lines with a random boundary. */
import { randomUUID } from 'node:crypto';
import type { Brand } from '#contracts/ids.ts';
import { cleanLabel, cleanUntrusted } from './clean-untrusted.ts';

/** A random delimiter, so that no text can contain it on purpose. */
export type Delimiter = Brand<'Boundary'>;

/** Makes a delimiter of 122 random bits, so that no author can forge the end of the enclosure. */
export function newDelimiter(): Delimiter {
  return randomUUID().replaceAll('-', '') as Delimiter;
}

/** Encloses the text. `about` says what it is and from whom; it is cleaned too. */
export function wrapUntrusted(text: string, about: string, boundary: Delimiter): string {
  const body = cleanUntrusted(text).replaceAll(boundary, '·');
  const label = cleanLabel(about).replaceAll(boundary, '·');
  return `${untrustedBegin(label, boundary)}\n${body}\n${untrustedEnd(boundary)}`;
}

/** Returns the line before the text. The label must be clean. */
export function untrustedBegin(label: string, boundary: Delimiter): string {
  return `<<<untrusted ${boundary} ${label}>>>`;
}

/** Returns the line after the text. */
export function untrustedEnd(boundary: Delimiter): string {
  return `<<<end untrusted ${boundary}>>>`;
}
