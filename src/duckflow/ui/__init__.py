"""What people see: console, headless output, and every word in two languages."""
