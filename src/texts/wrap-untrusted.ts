/** Encloses what strangers wrote between two lines with a random boundary: it is data. */
import { randomUUID } from 'node:crypto';
import type { Brand } from '#contracts/ids.ts';
import { cleanLabel, cleanUntrusted } from './clean-untrusted.ts';

/** Random, so that no text can know it. */
export type Delimiter = Brand<'Boundary'>;

/** 122 random bits: nobody can write the end of what encloses his text. */
export function newDelimiter(): Delimiter {
  return randomUUID().replaceAll('-', '') as Delimiter;
}

/** `about` says what it is and from whom; it is cleaned too. */
export function wrapUntrusted(text: string, about: string, boundary: Delimiter): string {
  const body = cleanUntrusted(text).replaceAll(boundary, '·');
  const label = cleanLabel(about).replaceAll(boundary, '·');
  return `${untrustedBegin(label, boundary)}\n${body}\n${untrustedEnd(boundary)}`;
}

/** The line before the text. The label must be clean. */
export function untrustedBegin(label: string, boundary: Delimiter): string {
  return `<<<untrusted ${boundary} ${label}>>>`;
}

/** The line behind the text. */
export function untrustedEnd(boundary: Delimiter): string {
  return `<<<end untrusted ${boundary}>>>`;
}
