// Airflow keeps the theme that its user chose for this origin. Without a choice the system's theme stays.
function follow() {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // the browser keeps nothing for this page
  }
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  } else {
    delete document.documentElement.dataset.theme;
  }
}
follow();
addEventListener("storage", follow);
