// Runs before the first paint, so that the page doesn't flash in the wrong theme.
(() => {
  try {
    const theme = localStorage.getItem('dragoman.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch { /* storage may be disabled: use the system's theme */ }
})();
