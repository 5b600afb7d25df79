/** Panels are `details` of the class `panel`: Escape closes the last opened, a press elsewhere those that float. */
export function closePanelsOnEscape() {
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    // It closes by itself, and alone.
    if (document.querySelector('dialog[open]') !== null) return;
    const panel = [...document.querySelectorAll('details.panel[open]')].at(-1);
    if (panel === undefined) return;
    panel.open = false;
    panel.querySelector('summary')?.focus();
  });
  document.addEventListener('click', (event) => {
    for (const panel of document.querySelectorAll('details.panel.floats[open]'))
      if (!panel.contains(event.target)) panel.open = false;
  });
}
