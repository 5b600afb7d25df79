import { type Browser, chromium } from 'playwright-core';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // One process for all pages, none for a page that may come, and nothing drawn that only moves.
  '--renderer-process-limit=1',
  '--disable-features=SpareRendererForSitePerProcess,Translate,OptimizationHints,MediaRouter,HttpsUpgrades',
  '--force-prefers-reduced-motion',
];

/** The system's Chromium, headless, talking to nobody but the test. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.PARLEY_CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: flags,
  });
}
