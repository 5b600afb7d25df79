import { type Browser, chromium } from 'playwright-core';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // One process for all pages, none kept in reserve, and no animations.
  '--renderer-process-limit=1',
  '--disable-features=SpareRendererForSitePerProcess,Translate,OptimizationHints,MediaRouter,HttpsUpgrades',
  '--force-prefers-reduced-motion',
];

/** The system's Chromium, headless, connecting to nothing but the test. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.PARLEY_CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: flags,
  });
}
